// A library that is preloaded into the command and makes the n-th call of one function fail. TFSEEK_FAIL is `CALL:N:ERRNO`. When the
// call fails, the file that TFSEEK_FIRED names is created. Calls on standard input, output and error do not fail.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

// Returns the errno with which this call of `name` fails, or 0.
static int fails(const char *name) {
    static atomic_int calls;
    const char *spec = getenv("TFSEEK_FAIL");
    size_t len = strlen(name);
    int n, error;
    if (!spec || strncmp(spec, name, len) || sscanf(spec + len, ":%d:%d", &n, &error) != 2) return 0;
    if (atomic_fetch_add(&calls, 1) + 1 != n) return 0;
    const char *fired = getenv("TFSEEK_FIRED");
    if (fired) syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, fired, O_CREAT | O_WRONLY, 0600));
    return error;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL(name)                       \
    do {                                 \
        int error = fails(name);         \
        if (error) {                     \
            errno = error;               \
            return -1;                   \
        }                                \
    } while (0)

ssize_t write(int fd, const void *bytes, size_t len) {
    if (fd > 2) FAIL("write");
    return REAL(write)(fd, bytes, len);
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
    if (error == ENOENT) unlink(from);
    errno = error;
    return -1;
}

int ftruncate64(int fd, off64_t len) {
    FAIL("ftruncate");
    return REAL(ftruncate64)(fd, len);
}

// The descriptor is closed even if the call fails, as on Linux.
int close(int fd) {
    int error = fd > 2 ? fails("close") : 0;
    int closed = REAL(close)(fd);
    if (!error) return closed;
    errno = error;
    return -1;
}

int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    FAIL("open");
    return REAL(open64)(path, flags, mode);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with) {
    int error = fails("thread");
    return error ? error : REAL(pthread_create)(thread, how, run, with);
}
