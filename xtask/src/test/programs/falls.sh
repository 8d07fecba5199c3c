#!/bin/sh
# Begins a test and ends as a program does that aborts.
echo 'running 1 test'
exit 134
