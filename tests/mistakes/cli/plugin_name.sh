# Name a plugin like no package.
# refused: command
# got: got '3d'
# expected: lower-case words
# fix: as in soft_clip

python -m headrace new-plugin 3d
