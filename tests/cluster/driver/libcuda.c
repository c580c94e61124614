/* CUDA's library for tests: the driver's version as a number, and nothing of a C library, so that it loads in any. */
int cuInit(unsigned int flags)
{
    return flags == 0 ? 0 : 1;
}

int cuDriverGetVersion(int *version)
{
    *version = DRIVER_NUMBER;
    return 0;
}
