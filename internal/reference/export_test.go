package reference

// InMemory is how much is kept in memory.
const InMemory = inMemory
