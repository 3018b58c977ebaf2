# The list of unit tests.
posenc_test(npy)
