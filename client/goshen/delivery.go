package goshen

import (
	"cmp"
	"slices"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
)

// stateOf is one state for all recipients of a snapshot: the worst failure if
// there is one, else the state of whoever is least far. A word that is not
// known, and a snapshot without recipients, is [client.DeliveryUnknown].
func stateOf(snapshot loose.Object) client.Delivery {
	rows, _ := snapshot.List("recipients")
	if len(rows) == 0 {
		return client.DeliveryUnknown
	}
	return slices.MinFunc(statesOf(rows), func(a, b client.Delivery) int {
		return cmp.Compare(slices.Index(worstFirst, a), slices.Index(worstFirst, b))
	})
}

func statesOf(rows []loose.Value) []client.Delivery {
	states := make([]client.Delivery, len(rows))
	for i, row := range rows {
		states[i] = client.Delivery(row.Object().Text("status"))
		if !slices.Contains(worstFirst, states[i]) {
			states[i] = client.DeliveryUnknown
		}
	}
	return states
}

// worstFirst: failures, then states by how far they are. A complaint is the
// mildest failure, for that mail did arrive; deferred lies behind accepted,
// because the recipient's server has answered.
var worstFirst = []client.Delivery{
	client.DeliveryBounced, client.DeliveryFailed, client.DeliveryRejected, client.DeliveryComplained,
	client.DeliveryUnknown,
	client.DeliveryQueued, client.DeliveryAccepted, client.DeliveryDeferred, client.DeliveryDelivered,
}
