package edit

const (
	// leastSize and mostSize bound the sizes of axes from which numbers are made, as 1/√d.
	leastSize, mostSize = 3, 512

	// mostValues is how many other values of a shape are tried as a result, and as an operand: the nearest
	// before it.
	mostValues = 40

	// mostWeights is how many other weights are read in place of one.
	mostWeights = 24

	// mostRecords is how many records from elsewhere are put in the place of a result, and mostTakers of how many
	// operators that take a value each is given another by itself.
	mostRecords, mostTakers = 24, 4

	// fittedCost is that of edits whose numbers are found, mostUnknown up to how many numbers of a table are, and
	// mostWritten how many of them are told.
	fittedCost, mostUnknown, mostWritten = 7, 16, 8

	// loopCost is how much later an operator of a loop is changed by itself.
	loopCost, leastLoop = 2, 3

	// within is how many operators before it an operand is taken, and mostNear how many other values are put in the place of
	// one in a whole line.
	within, mostNear = 2, 12

	// mostExchanged is how many pairs of values are exchanged in a piece, and within how many operators.
	mostExchanged, exchangedWithin = 2000, 40

	// mostSingle is up to how many operators of a piece each is also changed by itself.
	mostSingle = 300

	// mostParts is of how many parts all orders are tried, and mostPairs of how many more each two are exchanged.
	mostParts, mostPairs = 4, 12

	// mostAxes is how many axes a value may have whose elements are put in another order.
	mostAxes = 5

	// mostWidth is up to how many elements along an axis are put in another order, and mostWindow up to how
	// many keys each window is tried.
	mostWidth, mostWindow = 4096, 64

	// tableCost is how much later other kinds of edits are tried on what is made of constants alone.
	tableCost = 2

	// toNorm is within how many operators a norm's weight comes after its root.
	toNorm = 3

	// toScores is within how many operators a bias of an attention comes to its softmax.
	toScores = 8

	// toAngles is within how many operators positions and frequencies come to their cosine.
	toAngles = 12

	// toCompare is within how many operators positions come to where they are compared, and toRoot what is normed to
	// its root.
	toCompare, toRoot = 4, 5

	// mostSections is up to how many parts a rotary embedding is cut into, and mostUnits into how many units all other
	// sizes of them are tried.
	mostSections, mostUnits = 12, 16

	// mostLines is among how many sequences of a batch each two have each other's keys and values.
	mostLines = 8

	// mostPositions is up to how many positions of earlier tokens a token is given.
	mostPositions = 64

	// mostKeys is up to how many keys of an attention other masks of a forward pass are written, and near how far a
	// cosine and a sine may be from one circle, as 16 bits have them.
	mostKeys, near = 1024, 0.02

	// nearTable is how far the numbers of a table may be from a formula, relative to it; not measured.
	nearTable = 1e-3

	// mostGrid is up to how many numbers a weight may have to be read as another quantised one, and firstRows how many of
	// its rows tell whether it is one.
	mostGrid, firstRows = 1 << 24, 8

	// mostStacked is up to how many weights that lie in one are put in another order.
	mostStacked = 8

	// mostRegion is how many operators may lie between a value and what is made of it alone.
	mostRegion = 16

	// ordinalUpTo is how far operators of one expression are counted, to tell those that repeat apart.
	ordinalUpTo = 12
)
