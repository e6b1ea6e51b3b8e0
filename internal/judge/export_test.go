package judge

// InMemory is how much of what is replayed is kept in memory.
const InMemory = inMemory
