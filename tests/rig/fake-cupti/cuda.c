// libcuda.so.1 without a GPU: see README.md.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda.h"

#define NAMES 64
#define NAME_BYTES 4096

static launch_hook hook;
static int has_begun;
static char *names;

void fakeCudaAttach(launch_hook new_hook)
{
    __atomic_store_n(&hook, new_hook, __ATOMIC_RELEASE);
}

// What CUDA_INJECTION64_PATH names is loaded at the first call, and left alone where it fails.
int cuInit(unsigned flags)
{
    (void)flags;
    if (has_begun)
        return 0;
    has_begun = 1;
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*begin)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
    if (path && !library)
        fprintf(stderr, "fake cuda: %s\n", dlerror());
    if (begin)
        begin();
    return 0;
}

int cuDriverGetVersion(int *version)
{
    const char *said = getenv("FLOPWATCH_FAKE_DRIVER");
    *version = said ? atoi(said) : 13000;
    return *version ? 0 : 100;
}

// The names of a module's kernels, in memory that goes with the module.
static const char *name_of(int number)
{
    char *known = __atomic_load_n(&names, __ATOMIC_ACQUIRE);
    if (!known) {
        char *made = mmap(NULL, NAMES * NAME_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int at = 0; at < NAMES; at++) {
            int length = snprintf(made + at * NAME_BYTES, NAME_BYTES, "void kernel_%d<float, %d>(float*, int)", at, at);
            // The last one is as long as those of templates are.
            if (at == NAMES - 1)
                memset(made + at * NAME_BYTES + length, 'x', 3000);
        }
        if (__atomic_compare_exchange_n(&names, &known, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            known = made;
        else
            munmap(made, NAMES * NAME_BYTES);
    }
    return known + number % NAMES * NAME_BYTES;
}

// Unloads the module: the names of its kernels are gone.
void fakeCudaUnload(void)
{
    char *gone = __atomic_exchange_n(&names, NULL, __ATOMIC_ACQ_REL);
    if (gone)
        munmap(gone, NAMES * NAME_BYTES);
}

// A launch of which the program says everything itself.
int fakeCudaLaunchAs(const struct launch *launch)
{
    launch_hook call = __atomic_load_n(&hook, __ATOMIC_ACQUIRE);
    return call ? call(launch) : 0;
}

// A launch whose work begins at a time.
int fakeCudaLaunchAt(int work, int name, uint64_t start_ns, uint64_t duration_ns, uint32_t stream, uint32_t device)
{
    struct launch launch = {
        .work = (enum work)work,
        .name = name_of(name),
        .start_ns = start_ns,
        .duration_ns = duration_ns,
        .stream = stream,
        .device = device,
    };
    return fakeCudaLaunchAs(&launch);
}

int fakeCudaLaunch(int work, int name, uint64_t duration_ns, uint32_t stream)
{
    return fakeCudaLaunchAt(work, name, 0, duration_ns, stream, 0);
}
