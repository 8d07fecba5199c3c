// A library that a container would have loaded without the tracer.
#include "faults.h"

int InitializeInjection(void)
{
    log_call("next", 0);
    return 1;
}
