// Kinds of records and their lengths, of one release of libcupti.
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifndef RELEASE
#error "-DRELEASE=1305 says which release this is"
#endif

enum { K_COPY = 1, K_SET = 2, K_DRIVER = 4, K_RUNTIME = 5, K_DEVICE = 8, K_CONTEXT = 9, K_KERNEL = 10 };
enum { K_PEER = 22, K_STREAM = 37, K_WAIT = 38, K_GRAPH = 51, K_LAST = 64 };

// Lengths of records: fields are only ever appended.
#define SINCE(release, length) RELEASE >= (release) ? (length) :
static const size_t KERNEL_BYTES =
    SINCE(1304, 248) SINCE(1303, 232) SINCE(1301, 224) SINCE(1300, 216) SINCE(1200, 208) 200;
static const size_t COPY_BYTES = SINCE(1304, 112) SINCE(1208, 96) 88;
static const size_t SET_BYTES = SINCE(1304, 104) 88;
static const size_t WAIT_BYTES = SINCE(1208, 56) 40;
static const size_t GRAPH_BYTES = SINCE(1204, 56) 48;
static const size_t CONTEXT_BYTES = SINCE(1301, 40) SINCE(1206, 32) SINCE(1204, 24) 16;
static const size_t DEVICE_BYTES = SINCE(1302, 192) SINCE(1204, 184) 176;

static size_t bytes_of(uint32_t kind)
{
    switch (kind) {
    case 3:
    case K_KERNEL:
        return KERNEL_BYTES;
    case K_COPY:
        return COPY_BYTES;
    case K_SET:
        return SET_BYTES;
    case K_PEER:
        return 96;
    case K_WAIT:
        return WAIT_BYTES;
    case K_GRAPH:
        return GRAPH_BYTES;
    case K_CONTEXT:
        return CONTEXT_BYTES;
    case K_DEVICE:
        return DEVICE_BYTES;
    case K_STREAM:
        return 24;
    case 58:
        return 48;
    default:
        return 40;
    }
}
