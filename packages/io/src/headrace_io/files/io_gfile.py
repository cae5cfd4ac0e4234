"""Files and folders, as ``hr.io.gfile``."""

from headrace_io.files.file import GFile as GFile
from headrace_io.files.folders import copy as copy
from headrace_io.files.folders import exists as exists
from headrace_io.files.folders import glob as glob
from headrace_io.files.folders import isdir as isdir
from headrace_io.files.folders import listdir as listdir
from headrace_io.files.folders import makedirs as makedirs
from headrace_io.files.folders import mkdir as mkdir
from headrace_io.files.folders import remove as remove
from headrace_io.files.folders import rename as rename
from headrace_io.files.folders import rmtree as rmtree
from headrace_io.files.folders import stat as stat
from headrace_io.files.folders import walk as walk

__all__ = [
    "GFile",
    "copy",
    "exists",
    "glob",
    "isdir",
    "listdir",
    "makedirs",
    "mkdir",
    "remove",
    "rename",
    "rmtree",
    "stat",
    "walk",
]
