package path

// The kernels of convolutions over tokens are short: Mamba's have 4 elements, so 3 rows after those of
// the tokens. An axis that is longer by more is no axis of rows.
const maxTail = 15

// Weight on a key of padding is a finding: softmax leaves exactly 0 there, or less than this where a
// mask of −1e4 was added.
const paddingWeight = 1e-6
