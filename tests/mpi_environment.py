"""What lets jobs of Open MPI start on any machine that runs tests."""

# Open MPI refuses to start as root unless it is told otherwise; containers often have nobody else.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# It also refuses more ranks than cores; and a BLAS thread per core in every rank would only have
# them wait for one another.
MPI_ENV = {
    **AS_ROOT,
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
