module flopwatch.dev/rig/pause

go 1.21
