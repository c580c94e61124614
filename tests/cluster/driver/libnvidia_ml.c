/* NVML for tests: the driver's version, and nothing of a C library, so that it loads in any. */
int nvmlInit_v2(void)
{
    return 0;
}

int nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    static const char OWN[] = DRIVER_VERSION;

    if (length < sizeof(OWN))
        return 7; /* NVML_ERROR_INSUFFICIENT_SIZE */
    for (unsigned int i = 0; i < sizeof(OWN); i++)
        version[i] = OWN[i];
    return 0;
}
