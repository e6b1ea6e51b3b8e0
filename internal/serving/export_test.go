package serving

// Judge reads an answer as a server wrote it and judges it: whether it is right.
func Judge(m Model, ref *Reference, data []byte) (right bool, err error) {
	a, err := readAnswer(data)
	if err != nil {
		return false, err
	}
	return m.judge(ref, &a).fault == none, nil
}
