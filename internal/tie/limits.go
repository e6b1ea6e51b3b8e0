package tie

// unknown is the part, one in so many, of the tokens that may choose otherwise where nothing tells by
// how much. Clean: 1 of 9 to 1 of 13; routers that are wrong choose otherwise in a third or more. By
// reason.
const unknown = 8
