package tie

// Positions returns the sequence and token of each row of a tensor; nil where rows are no tokens.
func Positions(shape []int, tokens, sequence int) func(row int) (batch, token int) {
	if len(shape) < 2 || sequence == 0 {
		return nil
	}
	lead := shape[:len(shape)-1]
	rows := 1
	for _, d := range lead {
		rows *= d
	}
	batch := tokens / sequence
	switch {
	case rows == tokens:
		return func(row int) (int, int) { return row / sequence, row % sequence }
	case rows == batch:
		return func(row int) (int, int) { return row, sequence - 1 }
	case len(lead) == 3 && lead[0] == batch && lead[2] == sequence:
		return func(row int) (int, int) { return row / (lead[1] * lead[2]), row % sequence }
	case len(lead) == 3 && lead[0] == batch && lead[1] == sequence:
		return func(row int) (int, int) { return row / (lead[1] * lead[2]), row / lead[2] % sequence }
	}
	return nil
}
