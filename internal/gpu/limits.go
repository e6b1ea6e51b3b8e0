package gpu

// minFree is the share of a GPU's memory that is free where no other process is using it: engines
// take most of it. Not measured.
const minFree = 0.5
