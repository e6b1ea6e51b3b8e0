package session

// ProgramInStore returns the program of a golden of a store.
var ProgramInStore = programInStore
