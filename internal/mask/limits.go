package mask

// denies is the largest value by which an additive mask denies: −1e4 as bfloat16 has it. It is the
// format's, not measured; biases that are added to scores are above −1e3.
const denies = -9984

// named is how many of the numbers of a mask are named.
const named = 4
