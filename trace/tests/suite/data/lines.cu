// Compiled by CUDA 13.0: nvcc -lineinfo -cubin -arch=sm_86 -o lines.cubin lines.cu
__device__ __forceinline__ float square(float x) {
  return x * x + 1.0f;
}
__device__ float twice(float x) {
  float y = square(x);
  return y + square(y * 3.0f);
}
extern "C" __global__ void first(float *p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    p[i] = twice(p[i]);
}
__global__ void second(float *p, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    p[i] = sqrtf(p[i]) + square(p[i + 1]);
}
