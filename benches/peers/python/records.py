"""Single records in random order. Each function takes a corpus and returns a read function and the number of records.

`rand_raw` reads payloads as `bytes` and sums their lengths. `rand_example` sums one integer feature.
"""
from __future__ import annotations

import bisect
import itertools

from corpora import LABEL, files
from diy import Maps
from registry import peer

UPB = "google.protobuf.message_factory"
READER = "array_record.python.array_record_module"


def lengths(source):
    def read(ids):
        total = 0
        for i in ids:
            total += len(source[i])
        return total

    return read, len(source)


@peer("rand_raw", "tfseek", "payload", imports=["tfseek"], verify="payload")
@peer("rand_raw", "tfseek", "header", imports=["tfseek"], verify="header")
def _(corpus, verify):
    import tfseek

    return lengths(tfseek.open(files(corpus), kind="bytes", verify=verify))


@peer("rand_raw", "bagz", form="bag", imports=["bagz"])
def _(corpus):
    import bagz

    return lengths(bagz.Reader(",".join(files(corpus, "bag"))))


@peer("rand_raw", "diy mmap")
def _(corpus):
    source = Maps(corpus)
    maps, (shard, start, end) = source.maps, source.lists()

    def read(ids):
        total = 0
        for i in ids:
            total += len(maps[shard[i]][start[i]:end[i]])
        return total

    return read, len(source)


@peer("rand_raw", "array_record", "data source", form="array_record", imports=["array_record.python.array_record_data_source"])
def _(corpus):
    from array_record.python.array_record_data_source import ArrayRecordDataSource

    return lengths(ArrayRecordDataSource(files(corpus, "array_record")))


@peer("rand_raw", "array_record", "seek and read", form="array_record", imports=[READER])
def _(corpus):
    return lengths(SeekReader(corpus))


class SeekReader:
    """Reads ArrayRecord by `seek` and `read`. Unlike reads of the data source, their cost does not grow with the shard."""

    def __init__(self, corpus):
        from array_record.python.array_record_module import ArrayRecordReader

        self.readers = [ArrayRecordReader(path, "readahead_buffer_size:0,max_parallelism:0") for path in files(corpus, "array_record")]
        self.ends = list(itertools.accumulate(reader.num_records() for reader in self.readers))
        self.starts = [0, *self.ends]

    def __len__(self):
        return self.ends[-1]

    def __getitem__(self, i):
        shard = bisect.bisect_right(self.ends, i)
        reader = self.readers[shard]
        reader.seek(i - self.starts[shard])
        return reader.read()


@peer("rand_example", "tfseek", "payload", imports=["tfseek"], verify="payload")
@peer("rand_example", "tfseek", "header", imports=["tfseek"], verify="header")
def _(corpus, verify):
    import tfseek

    ds, key = tfseek.open(files(corpus), kind="example", verify=verify), LABEL[corpus]

    def read(ids):
        total = 0
        for i in ids:
            total += int(ds[i][key][0])
        return total

    return read, len(ds)


def parsed(source, corpus):
    from proto import example_class

    parse, key = example_class().FromString, LABEL[corpus]

    def read(ids):
        total = 0
        for i in ids:
            total += parse(source(i)).features.feature[key].int64_list.value[0]
        return total

    return read


@peer("rand_example", "bagz + upb", form="bag", imports=["bagz", UPB])
def _(corpus):
    import bagz

    reader = bagz.Reader(",".join(files(corpus, "bag")))
    return parsed(reader.__getitem__, corpus), len(reader)


@peer("rand_example", "diy mmap + upb", imports=[UPB])
def _(corpus):
    source = Maps(corpus)
    maps, (shard, start, end) = source.maps, source.lists()
    return parsed(lambda i: maps[shard[i]][start[i]:end[i]], corpus), len(source)
