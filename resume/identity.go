package resume

import (
	"context"
	"errors"
	"fmt"

	"github.com/replywake/replywake/internal/sqldb"
)

// A name belongs to one stream: an engine would run another stream's workflows
// and send their mail through its own provider.

// take gives the engine's name to its stream, unless another has it. It asks
// the database once an engine.
func (e *Engine) take(ctx context.Context) error {
	if e.taken.Load() {
		return nil
	}
	err := e.db.Tx(ctx, func(tx sqldb.Tx) error {
		if _, err := tx.Exec(ctx, e.st.EngineTake, e.cfg.Name, e.stream); err != nil {
			return err
		}
		_, err := e.has(ctx, tx)
		return err
	})
	if err == nil { // it is committed
		e.taken.Store(true)
	}
	return err
}

// compare refuses a name that is another stream's, in the caller's transaction.
func (e *Engine) compare(ctx context.Context, tx sqldb.Tx) error {
	if e.taken.Load() {
		return nil
	}
	has, err := e.has(ctx, tx)
	if has {
		e.taken.Store(true)
	}
	return err
}

// has says whether the name is the stream's. Nobody may have it yet.
func (e *Engine) has(ctx context.Context, tx sqldb.Tx) (bool, error) {
	var stream string
	err := sqldb.One(ctx, tx, e.st.EngineStream, []any{e.cfg.Name}, &stream)
	switch {
	case errors.Is(err, sqldb.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case stream != e.stream:
		return false, fmt.Errorf("%w: the engine name %q belongs to the stream %q, the engine's Mail is %q", ErrStream, e.cfg.Name, stream, e.stream)
	}
	return true, nil
}
