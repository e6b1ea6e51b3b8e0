package op

// Conv is a convolution of [channels, height, width] with a weight [OutChannels,
// InChannels/Groups, KernelHeight, KernelWidth], with zeros around; in one dimension the height is 1.
type Conv struct {
	InChannels, Height, Width        int // of the input
	OutChannels, OutHeight, OutWidth int
	KernelHeight, KernelWidth        int
	Groups                           int
	Stride, Pad                      [2]int    // of height and width
	W, B                             []float64 // B is nil for none
	Biases                           float64   // how often B is added: 1

	// What goes wrong.
	Flipped [2]bool // the kernel is read backwards along height, width
	Shift   [2]int  // the input lies so many places further on
	Edge    bool    // what lies around is not zero, but the next element
	Skip    int     // 1 + the number of the kernel's column that is left out; 0 for none
}

// Work is the number of multiplications for n rows of the output.
func (c *Conv) Work(n int) float64 {
	return float64(n*c.OutWidth) * float64(c.InChannels/c.Groups*c.KernelHeight*c.KernelWidth)
}

// Row returns row y of an output channel, of an input [InChannels, Height,
// Width].
func (c *Conv) Row(x []float64, channel, y int) []float64 {
	out := make([]float64, c.OutWidth)
	in := c.InChannels / c.Groups
	first := channel / (c.OutChannels / c.Groups) * in
	size := c.KernelHeight * c.KernelWidth
	for k := range in {
		plane := x[(first+k)*c.Height*c.Width:][:c.Height*c.Width]
		w := c.W[(channel*in+k)*size:][:size]
		for i := range c.KernelHeight {
			row, ok := c.place(y*c.Stride[0]-c.Pad[0]+i-c.Shift[0], c.Height)
			if !ok {
				continue
			}
			a := i
			if c.Flipped[0] {
				a = c.KernelHeight - 1 - i
			}
			for j := range c.KernelWidth {
				b := j
				if c.Flipped[1] {
					b = c.KernelWidth - 1 - j
				}
				if j+1 == c.Skip {
					continue
				}
				f := w[a*c.KernelWidth+b]
				for o := range out {
					if at, ok := c.place(o*c.Stride[1]-c.Pad[1]+j-c.Shift[1], c.Width); ok {
						out[o] += f * plane[row*c.Width+at]
					}
				}
			}
		}
	}
	if c.B != nil {
		for o := range out {
			out[o] += c.Biases * c.B[channel]
		}
	}
	return out
}

// place is an index, or where it lies beyond the ends that of the last element; false for zero.
func (c *Conv) place(at, n int) (int, bool) {
	if at >= 0 && at < n {
		return at, true
	}
	return min(max(at, 0), n-1), c.Edge
}
