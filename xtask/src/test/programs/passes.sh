#!/bin/sh
# Says what a harness says whose one test passed.
echo 'running 1 test'
echo 'test a ... ok <0.250s>'
echo
echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.25s'
