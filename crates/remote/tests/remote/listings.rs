//! Listings of many objects.

use super::server::Fault;
use super::*;
use tfseek::io::{Listing, Store};
use tfseek_testkit::rng::Rng;

/// Names as of shards with gaps, and others before, between and after them.
fn names(rng: &mut Rng) -> Vec<String> {
    let shards = 1 + rng.below(400);
    let (width, total) = ([1, 3, 5][rng.below(3)], [shards, shards / 3 + 1, shards * 10][rng.below(3)]);
    let mut names: Vec<String> = Vec::new();
    for k in 0..shards {
        if rng.below(10) > 0 {
            names.push(format!("train-{k:0width$}-of-{total:05}.tfrecord"));
        }
    }
    for _ in 0..rng.below(30) {
        let n = rng.below(total + 2);
        names.push(match rng.below(6) {
            // As cuts may be.
            0 => format!("train-{n:0width$}"),
            1 => format!("train-{n:0width$}/x-of-{n}"),
            2 => format!("a-{n}"),
            3 => format!("train-{n}x-of-99999999999999999999"),
            4 => format!("z-{n}-of-7/{n}"),
            _ => format!("train-{n:0width$}-of-{n}-of-{total}"),
        });
    }
    names
}

#[test]
fn chains_find_what_one_listing_finds() {
    let mut rng = Rng::new(7);
    let mut chained = 0;
    for round in 0..60 {
        let scheme = ["s3", "gs", "az"][round % 3];
        let case = Case::new(scheme);
        for name in names(&mut rng) {
            case.set(&name, b"x".to_vec());
        }
        for (prefix, deep) in
            [("", false), ("", true), ("train-", false), ("train-", true), ("train-1", false)]
        {
            let list = |page: usize| -> (Listing, u64) {
                case.server.page(page);
                case.server.counts();
                let listing = case.store().list(&case.url(prefix), deep).unwrap();
                (listing, case.server.counts().lists)
            };
            let (expected, one) = list(100_000);
            assert_eq!(one, 1);
            let page = 1 + rng.below(20);
            let (found, lists) = list(page);
            assert_eq!(found, expected, "{scheme} {prefix} {deep}: {lists} pages of {page}");
            let serial = (expected.objects.len() + expected.folders.len()).div_ceil(page).max(1) as u64;
            // Each chain ends in a page of its own. Azure is asked for a shorter prefix.
            assert!(scheme == "az" || lists <= serial + 17, "{lists} pages of {page}, {serial} in a row");
            chained += u64::from(scheme != "az" && lists > serial);
        }
    }
    assert!(chained > 20, "{chained}");
}

#[test]
fn many_numbered_shards_are_listed_in_chains() {
    for scheme in ["s3", "gs"] {
        let case = Case::new(scheme);
        for k in 0..4000 {
            case.set(&format!("many-{k:05}-of-04000.tfrecord"), b"x".to_vec());
        }
        case.server.page(100);
        // The first page tells the names.
        case.server.gather(1, 16);
        case.server.most_at_once();
        let listing = case.store().list(&case.url("many-"), false).unwrap();
        assert_eq!(listing.objects.len(), 4000);
        assert!(listing.objects.windows(2).all(|pair| pair[0].url < pair[1].url));
        assert_eq!(case.server.most_at_once(), 16);
        assert!(case.server.counts().lists <= 40 + 16);
    }
}

#[test]
fn the_shards_of_a_pack_are_listed_together() {
    let case = Case::new("s3");
    let names: Vec<String> = (0..40).map(|k| format!("many-{k:05}-of-00040.tfrecord")).collect();
    for (k, name) in names.iter().enumerate() {
        case.set(name, shard(k as i64..k as i64 + 1));
    }
    let paths: Vec<_> = names.iter().map(|name| case.url(name).into()).collect();
    let options = case.index().store(case.store());
    tfseek::index::write_pack("many", &paths, &options).unwrap();
    case.server.counts();
    let ds = case.open(".tfseek/many.tfrp").unwrap();
    assert_eq!(labels(&ds), (0..40).collect::<Vec<_>>());
    let counts = case.server.counts();
    assert!(counts.lists <= 2, "{counts:?}");
    // Without listings the objects are found by their names.
    case.server.refuse_lists();
    let ds = case.open(".tfseek/many.tfrp").unwrap();
    assert_eq!(label(&ds, 7, &mut Vec::new()).unwrap(), 7);
}

#[test]
fn listings_without_an_end_are_errors() {
    let s3 = "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>same</NextContinuationToken></ListBucketResult>";
    let azure = "<EnumerationResults><Blobs></Blobs><NextMarker>same</NextMarker></EnumerationResults>";
    for (scheme, page) in [("s3", s3), ("gs", s3), ("az", azure), ("hf", "[]")] {
        let case = Case::new(scheme);
        let lists = if scheme == "hf" { "/tree/" } else { "prefix=" };
        let list = || case.store().list(&case.url("train-"), false).unwrap_err().to_string();
        let link = |to: &str| ("Link", format!("<{to}/api/datasets/x?cursor=same>; rel=\"next\""));
        let answer = |link| Fault::Answer(200, page.as_bytes().to_vec(), link);
        case.server.fail(lists, answer(link(&case.server.url())), 1000);
        case.server.fail("/api/datasets/x", answer(link(&case.server.url())), 1000);
        case.server.counts();
        let text = list();
        assert!(text.contains("the listing has no end: a page leads to an earlier one"), "{scheme}: {text}");
        assert!(case.server.counts().requests <= 5);
        case.server.clear_faults();
        let head = "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
        let part = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
        case.server.fail(lists, Fault::Endless(head, part, Duration::ZERO), 1000);
        let text = list();
        assert!(text.contains("67108864"), "{scheme}: {text}");
        case.server.clear_faults();
        if scheme == "hf" {
            case.server.fail(lists, answer(link("http://127.0.0.1:1")), 1000);
            let text = list();
            assert!(text.contains("goes on at another server"), "{text}");
        }
    }
}
