"""Files and folders that programs handle outside of graphs: ``hr.gfile`` and ``hr.io.gfile``."""
