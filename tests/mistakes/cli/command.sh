# Misspell a command.
# refused: command
# got: 'docter'
# expected: --help lists the commands
# fix: did you mean doctor

python -m headrace docter
