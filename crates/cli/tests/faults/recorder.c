// A library that is preloaded into a process and writes down the calls that change files in the folder TFSEEK_ROOT, in their order, into
// the file TFSEEK_CALLS. Each begins with a line, and a write is followed by its bytes:
//
// create INODE PATH     a new file, also without a name (no PATH)
// write INODE AT LEN    truncate INODE LEN     sync INODE     folder INODE PATH (of a folder that is synced)
// rename FROM|TO        link INODE PATH        unlink PATH    mkdir INODE PATH         rmdir PATH
//
// Paths are relative to the folder. TFSEEK_ARM as in shim.c: nothing is written down before that path is opened.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define PATH (2 * PATH_MAX)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int calls = -1, armed;

static void put(const void *bytes, size_t len) {
    for (const char *at = bytes; len;) {
        long n = syscall(SYS_write, calls, at, len);
        if (n <= 0) abort();
        at += n, len -= n;
    }
}

static void note(const char *format, ...) {
    char line[3 * PATH];
    va_list values;
    if (calls < 0) calls = syscall(SYS_openat, AT_FDCWD, getenv("TFSEEK_CALLS"), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    va_start(values, format);
    put(line, vsnprintf(line, sizeof line, format, values));
    va_end(values);
}

// Finds the path in the folder. Returns 0 for a path elsewhere.
static int inside(int dir, const char *path, char *out) {
    const char *root = getenv("TFSEEK_ROOT");
    char all[PATH];
    long n = 0;
    if (!root || (getenv("TFSEEK_ARM") && !armed)) return 0;
    if (*path != '/') {
        char fd[64] = "/proc/self/cwd";
        if (dir != AT_FDCWD) snprintf(fd, sizeof fd, "/proc/self/fd/%d", dir);
        n = syscall(SYS_readlinkat, AT_FDCWD, fd, all, PATH_MAX);
        if (n < 0) return 0;
        all[n++] = '/';
    }
    snprintf(all + n, sizeof all - n, "%s", path);
    size_t len = strlen(root);
    if (strncmp(all, root, len) || (all[len] && all[len] != '/')) return 0;
    // Without empty names and single dots.
    *out = 0;
    for (char *rest = all + len, *name; (name = strsep(&rest, "/"));) {
        if (!strcmp(name, "..")) abort();
        if (*name && strcmp(name, ".")) sprintf(out + strlen(out), "%s%s", *out ? "/" : "", name);
    }
    return 1;
}

static int is_inside(int fd) {
    char link[64], path[PATH], out[PATH];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long n = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX);
    if (n < 0) return 0;
    path[n] = 0;
    return inside(AT_FDCWD, path, out);
}

static struct stat state(int fd) {
    struct stat found = {0};
    if (syscall(SYS_fstat, fd, &found)) abort();
    return found;
}

static unsigned long inode(const char *path) {
    struct stat found = {0};
    syscall(SYS_newfstatat, AT_FDCWD, path, &found, AT_SYMLINK_NOFOLLOW);
    return found.st_ino;
}

#define HOLD pthread_mutex_lock(&lock)
#define DONE(result)                 \
    do {                             \
        int error = errno;           \
        pthread_mutex_unlock(&lock); \
        errno = error;               \
        return result;               \
    } while (0)

static int opened(int dir, const char *path, int flags, int mode) {
    char at[PATH];
    const char *arm = getenv("TFSEEK_ARM");
    if (arm && !strcmp(arm, path)) armed = 1;
    HOLD;
    int is_new = (flags & O_CREAT) && syscall(SYS_faccessat, dir, path, F_OK);
    int fd = syscall(SYS_openat, dir, path, flags, mode);
    if (fd < 0) DONE(-1);
    if (inside(dir, path, at)) {
        unsigned long number = state(fd).st_ino;
        if ((flags & __O_TMPFILE) == __O_TMPFILE) note("create %lu\n", number);
        else if (is_new) note("create %lu %s\n", number, at);
        else if (flags & O_TRUNC) note("truncate %lu 0\n", number);
    }
    DONE(fd);
}

#define MODE                            \
    int mode = 0;                       \
    if (flags & (O_CREAT | __O_TMPFILE)) { \
        va_list more;                   \
        va_start(more, flags);          \
        mode = va_arg(more, int);       \
        va_end(more);                   \
    }

int open(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE return opened(AT_FDCWD, path, flags, mode); }
int openat(int dir, const char *path, int flags, ...) { MODE return opened(dir, path, flags, mode); }
int openat64(int dir, const char *path, int flags, ...) { MODE return opened(dir, path, flags, mode); }

ssize_t write(int fd, const void *bytes, size_t len) {
    if (fd <= 2) return REAL(write)(fd, bytes, len);
    HOLD;
    int is_file = is_inside(fd) && S_ISREG(state(fd).st_mode);
    long at = is_file ? syscall(SYS_lseek, fd, 0, SEEK_CUR) : 0;
    if (is_file && (syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND)) at = state(fd).st_size;
    ssize_t n = REAL(write)(fd, bytes, len);
    if (is_file && n > 0) note("write %lu %ld %zd\n", (unsigned long)state(fd).st_ino, at, n), put(bytes, n);
    DONE(n);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (fd <= 2 || count < 1) return REAL(writev)(fd, parts, count);
    return write(fd, parts[0].iov_base, parts[0].iov_len);
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off64_t at) {
    HOLD;
    ssize_t n = REAL(pwrite64)(fd, bytes, len, at);
    if (n > 0 && is_inside(fd)) note("write %lu %ld %zd\n", (unsigned long)state(fd).st_ino, (long)at, n), put(bytes, n);
    DONE(n);
}

// Without these, the bytes go through `write`.
ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *to_at, size_t len, unsigned flags) {
    (void)from, (void)at, (void)to, (void)to_at, (void)len, (void)flags;
    errno = EXDEV;
    return -1;
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t len) {
    (void)to, (void)from, (void)at, (void)len;
    errno = EINVAL;
    return -1;
}

int ftruncate64(int fd, off64_t len) {
    HOLD;
    int done = REAL(ftruncate64)(fd, len);
    if (!done && is_inside(fd)) note("truncate %lu %ld\n", (unsigned long)state(fd).st_ino, (long)len);
    DONE(done);
}

static int synced(int fd, int done) {
    char link[64], path[PATH], at[PATH];
    struct stat found = state(fd);
    if (done || !is_inside(fd)) return done;
    if (!S_ISDIR(found.st_mode)) {
        note("sync %lu\n", (unsigned long)found.st_ino);
        return done;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long n = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX);
    path[n < 0 ? 0 : n] = 0;
    if (inside(AT_FDCWD, path, at)) note("folder %lu %s\n", (unsigned long)found.st_ino, at);
    return done;
}

// Nothing is lost here, so no call waits for the disk.
int fsync(int fd) { HOLD; int done = synced(fd, 0); DONE(done); }
int fdatasync(int fd) { HOLD; int done = synced(fd, 0); DONE(done); }

static int renamed(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    char a[PATH], b[PATH];
    HOLD;
    int is_known = inside(from_dir, from, a) & inside(to_dir, to, b);
    int done = syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
    if (!done && is_known) note("rename %s|%s\n", a, b);
    DONE(done);
}

int rename(const char *from, const char *to) { return renamed(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int a, const char *from, int b, const char *to) { return renamed(a, from, b, to, 0); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) { return renamed(a, from, b, to, flags); }

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
    char at[PATH], all[3 * PATH];
    HOLD;
    int done = REAL(linkat)(from_dir, from, to_dir, to, flags);
    if (!done && inside(to_dir, to, at)) {
        snprintf(all, sizeof all, "%s/%s", getenv("TFSEEK_ROOT"), at);
        note("link %lu %s\n", inode(all), at);
    }
    DONE(done);
}

int unlinkat(int dir, const char *path, int flags) {
    char at[PATH];
    HOLD;
    int is_known = inside(dir, path, at);
    int done = syscall(SYS_unlinkat, dir, path, flags);
    if (!done && is_known) note("%s %s\n", flags & AT_REMOVEDIR ? "rmdir" : "unlink", at);
    DONE(done);
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdir(const char *path, mode_t mode) {
    char at[PATH], all[3 * PATH];
    HOLD;
    int done = REAL(mkdir)(path, mode);
    if (!done && inside(AT_FDCWD, path, at)) {
        snprintf(all, sizeof all, "%s/%s", getenv("TFSEEK_ROOT"), at);
        note("mkdir %lu %s\n", inode(all), at);
    }
    DONE(done);
}

// A map that writes into a file would not be seen.
void *mmap64(void *at, size_t len, int access, int flags, int fd, off64_t offset) {
    if (fd > 2 && (access & PROT_WRITE) && (flags & MAP_SHARED) && is_inside(fd)) abort();
    return REAL(mmap64)(at, len, access, flags, fd, offset);
}
