// A library that is preloaded into a process and makes calls of the C library fail. Calls on standard input, output and error do not fail.
//
// TFSEEK_FAIL=CALL:N:ERRNO   the N-th call fails once; then the file that TFSEEK_FIRED names is created. -9 kills the process instead
// TFSEEK_SHORT=BYTES         each read and write transfers at most this number of bytes
// TFSEEK_INTERRUPT=1         every second read, write, open and sync fails with EINTR
// TFSEEK_DISK=BYTES          writes of more bytes than this in total fail with ENOSPC
// TFSEEK_LARGE=BYTES         the call "alloc" of TFSEEK_FAIL is a request of memory of at least this number of bytes
// TFSEEK_ARM=PATH            nothing fails until the process opens this path. Opening it again begins the count again, and opening PATH.off
//                            ends the faults. The variables may have other values then.

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int armed, calls;

static int is_armed(void) { return armed || !getenv("TFSEEK_ARM"); }

// Begins or ends the faults if `path` says so. Such an open does not fail.
static int arms(const char *path) {
    const char *name = getenv("TFSEEK_ARM");
    size_t len = name ? strlen(name) : 0;
    if (!name || strncmp(name, path, len) || (path[len] && strcmp(path + len, ".off"))) return 0;
    calls = 0;
    armed = !path[len];
    return 1;
}

// Returns the errno with which this call of `name` fails, or 0.
static int fails(const char *name) {
    static atomic_int tries;
    if (!is_armed()) return 0;
    const char *some = "read write open fsync";
    if (getenv("TFSEEK_INTERRUPT") && strstr(some, name) && atomic_fetch_add(&tries, 1) % 2) return EINTR;
    const char *spec = getenv("TFSEEK_FAIL");
    size_t len = strlen(name);
    int n, error;
    if (!spec || strncmp(spec, name, len) || sscanf(spec + len, ":%d:%d", &n, &error) != 2) return 0;
    if (atomic_fetch_add(&calls, 1) + 1 != n) return 0;
    const char *fired = getenv("TFSEEK_FIRED");
    if (fired) syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, fired, O_CREAT | O_WRONLY, 0600));
    if (error < 0) kill(getpid(), -error);
    return error;
}

// Returns the number of bytes that this read or write may transfer.
static size_t at_most(size_t len) {
    const char *spec = getenv("TFSEEK_SHORT");
    size_t most = spec && is_armed() ? strtoul(spec, NULL, 10) : len;
    return len < most ? len : most;
}

// Returns the number of bytes that this write may transfer, or -1 if the disk is full.
static ssize_t room(size_t len) {
    static atomic_long written;
    const char *spec = getenv("TFSEEK_DISK");
    len = at_most(len);
    if (!spec || !is_armed() || !len) return len;
    long left = atol(spec) - atomic_fetch_add(&written, (long)len);
    if (left <= 0) {
        errno = ENOSPC;
        return -1;
    }
    return (long)len < left ? (ssize_t)len : left;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL_AS(name, value)             \
    do {                                 \
        int error = fails(name);         \
        if (error) {                     \
            errno = error;               \
            return value;                \
        }                                \
    } while (0)
#define FAIL(name) FAIL_AS(name, -1)

ssize_t read(int fd, void *bytes, size_t len) {
    if (fd > 2) FAIL("read");
    return REAL(read)(fd, bytes, fd > 2 ? at_most(len) : len);
}

ssize_t pread64(int fd, void *bytes, size_t len, off64_t at) {
    FAIL("read");
    return REAL(pread64)(fd, bytes, at_most(len), at);
}

ssize_t readv(int fd, const struct iovec *parts, int count) {
    if (fd > 2) FAIL("read");
    return REAL(readv)(fd, parts, count);
}

ssize_t write(int fd, const void *bytes, size_t len) {
    if (fd <= 2) return REAL(write)(fd, bytes, len);
    FAIL("write");
    ssize_t most = room(len);
    return most < 0 ? -1 : REAL(write)(fd, bytes, most);
}

// Writes one part, which is a short write.
ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (fd <= 2 || count < 1) return REAL(writev)(fd, parts, count);
    return write(fd, parts[0].iov_base, parts[0].iov_len);
}

int fsync(int fd) {
    FAIL("fsync");
    return REAL(fsync)(fd);
}

int fdatasync(int fd) {
    FAIL("fsync");
    return REAL(fdatasync)(fd);
}

// A file system that has lost the file reports ENOENT, so the file is removed.
int rename(const char *from, const char *to) {
    int error = fails("rename");
    if (!error) return REAL(rename)(from, to);
    if (error == ENOENT) REAL(unlink)(from);
    errno = error;
    return -1;
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
    FAIL("link");
    return REAL(linkat)(from_dir, from, to_dir, to, flags);
}

int unlink(const char *path) {
    FAIL("unlink");
    return REAL(unlink)(path);
}

int rmdir(const char *path) {
    FAIL("unlink");
    return REAL(rmdir)(path);
}

int mkdir(const char *path, mode_t mode) {
    FAIL("mkdir");
    return REAL(mkdir)(path, mode);
}

off64_t lseek64(int fd, off64_t by, int from) {
    if (fd > 2) FAIL("lseek");
    return REAL(lseek64)(fd, by, from);
}

// The descriptor is closed even if the call fails, as on Linux.
int close(int fd) {
    int error = fd > 2 ? fails("close") : 0;
    int closed = REAL(close)(fd);
    if (!error) return closed;
    errno = error;
    return -1;
}

#define MODE(flags)                                                       \
    int mode = 0;                                                         \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {                              \
        va_list more;                                                     \
        va_start(more, flags);                                            \
        mode = va_arg(more, int);                                         \
        va_end(more);                                                     \
    }

int open64(const char *path, int flags, ...) {
    MODE(flags)
    if (!arms(path)) FAIL("open");
    return REAL(open64)(path, flags, mode);
}

int open(const char *path, int flags, ...) {
    MODE(flags)
    if (!arms(path)) FAIL("open");
    return REAL(open)(path, flags, mode);
}

int fcntl(int fd, int what, ...) {
    va_list more;
    va_start(more, what);
    void *with = va_arg(more, void *);
    va_end(more);
    if (what == F_DUPFD_CLOEXEC) FAIL("dup");
    return REAL(fcntl)(fd, what, with);
}

DIR *opendir(const char *path) {
    FAIL_AS("opendir", NULL);
    return REAL(opendir)(path);
}

struct dirent64 *readdir64(DIR *dir) {
    FAIL_AS("readdir", NULL);
    return REAL(readdir64)(dir);
}

char *realpath(const char *path, char *resolved) {
    FAIL_AS("realpath", NULL);
    return REAL(realpath)(path, resolved);
}

int statx(int dir, const char *path, int flags, unsigned mask, struct statx *found) {
    // With a null pointer, `std` tests if the system has this call. The header declares that the pointer is never null.
    const char *volatile given = path;
    if (given && (*given || dir > 2)) FAIL("stat");
    return REAL(statx)(dir, path, flags, mask, found);
}

int stat64(const char *path, struct stat64 *found) {
    FAIL("stat");
    return REAL(stat64)(path, found);
}

int lstat64(const char *path, struct stat64 *found) {
    FAIL("stat");
    return REAL(lstat64)(path, found);
}

int fstat64(int fd, struct stat64 *found) {
    if (fd > 2) FAIL("stat");
    return REAL(fstat64)(fd, found);
}

// Only maps of files fail. The standard library of Rust maps memory for the stacks of signal handlers and panics if it gets none.
void *mmap64(void *at, size_t len, int access, int flags, int fd, off64_t offset) {
    if (fd > 2) FAIL_AS("mmap", MAP_FAILED);
    return REAL(mmap64)(at, len, access, flags, fd, offset);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with) {
    int error = fails("thread");
    return error ? error : REAL(pthread_create)(thread, how, run, with);
}

// Requests of memory. The functions of glibc are called directly, because `dlsym` requests memory itself.
void *__libc_malloc(size_t len);
void *__libc_calloc(size_t count, size_t len);
void *__libc_realloc(void *old, size_t len);
void *__libc_memalign(size_t align, size_t len);

static int is_refused(size_t len) {
    const char *least = len < 65536 ? NULL : getenv("TFSEEK_LARGE");
    return least && len >= strtoul(least, NULL, 10) && fails("alloc");
}

#define REFUSE(len)         \
    do {                    \
        if (is_refused(len)) { \
            errno = ENOMEM; \
            return NULL;    \
        }                   \
    } while (0)

void *malloc(size_t len) {
    REFUSE(len);
    return __libc_malloc(len);
}

void *calloc(size_t count, size_t len) {
    REFUSE(len > 1 ? count * len : count);
    return __libc_calloc(count, len);
}

void *realloc(void *old, size_t len) {
    REFUSE(len);
    return __libc_realloc(old, len);
}

int posix_memalign(void **to, size_t align, size_t len) {
    if (is_refused(len)) return ENOMEM;
    *to = __libc_memalign(align, len);
    return *to ? 0 : ENOMEM;
}
