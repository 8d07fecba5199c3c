// What CUPTI's headers refer to of CUDA's own and of CUPTI's other headers, none of whose layouts
// matter: numbers, handles, and an identifier of 16 bytes.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef int CUdevice, CUdevice_attribute;
typedef struct opaque *CUcontext, *CUevent, *CUgraph, *CUgraphExec, *CUgraphNode, *CUstream;
typedef struct opaque CUaccessPolicyWindow;
typedef struct {
    char bytes[16];
} CUuuid;

typedef int CUpti_DeviceAttribute, CUpti_MetricValueKind;
typedef uint32_t CUpti_CallbackId, CUpti_EventDomainID, CUpti_EventID, CUpti_MetricID;
typedef uint64_t CUpti_MetricValue;
typedef struct opaque *CUpti_SubscriberHandle;
