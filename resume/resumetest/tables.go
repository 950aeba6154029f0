package resumetest

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/replywake/replywake/resume"
)

// tables is what is committed at one moment.
type tables struct {
	workflows []workflow
	threads   []thread
	mail      []letter
	sends     []send
	history   []happened
	seen      []seen
	parked    []parked
	floors    []floor
	calls     []call
	joined    []joined
	clock     micros   // the database's
	zoneless  []string // columns whose times are no instants
	letters   map[string]*letter
}

// index makes the mailbox quick to look at.
func (t *tables) index() {
	t.letters = make(map[string]*letter, len(t.mail))
	for i := range t.mail {
		t.letters[t.mail[i].EventID] = &t.mail[i]
	}
}

// micros is a time as microseconds since 1970; 0 is none.
type micros int64

type workflow struct {
	ID           string `json:"id"`
	Run          string `json:"run"`
	Inbox        string `json:"inbox"`
	Counterparty string `json:"counterparty"`
	Status       string `json:"status"`
	Step         int64  `json:"step"`
	Arrived      int64  `json:"arrived"`
	Consumed     int64  `json:"consumed"`
	Gen          int64  `json:"gen"`
	Owner        string `json:"owner"`
	Due          micros `json:"due"`
	Deadline     micros `json:"deadline"`
	Attempts     int64  `json:"attempts"`
	Error        string `json:"error"`
	Updated      micros `json:"updated_at"`
	Finished     micros `json:"finished_at"`
}

func (w *workflow) status() resume.Status { return resume.Status(w.Status) }
func (w *workflow) terminal() bool        { return w.status().Terminal() }

type thread struct {
	Stream    string `json:"stream"`
	Inbox     string `json:"inbox"`
	Thread    string `json:"thread"`
	Workflow  string `json:"workflow"`
	Run       string `json:"run"`
	MatchedBy string `json:"matched_by"`
}

// letter is a row of the mailbox.
type letter struct {
	ID         int64  `json:"id"`
	Stream     string `json:"stream"`
	EventID    string `json:"event_id"`
	Kind       string `json:"kind"`
	Inbox      string `json:"inbox"`
	Thread     string `json:"thread"`
	Message    string `json:"message"`
	Approval   string `json:"approval"`
	AliasOf    int64  `json:"alias_of"`
	Place      string `json:"place"`
	Workflow   string `json:"workflow"`
	Run        string `json:"run"`
	MatchedBy  string `json:"matched_by"`
	ConsumedBy int64  `json:"consumed_by"`
	Reason     string `json:"reason"`
	Due        micros `json:"due"`
	Attempts   int64  `json:"attempts"`
	Decision   string `json:"decision"`
}

func (l *letter) pending() bool { return l.Place == "input" && l.ConsumedBy == 0 }

type send struct {
	Workflow string `json:"workflow"`
	Run      string `json:"run"`
	Step     int64  `json:"step"`
	Key      string `json:"key"`
	Hash     string `json:"hash"`
	State    string `json:"state"`
	Attempts int64  `json:"attempts"`
	First    micros `json:"first_attempt"`
	Due      micros `json:"due"`
	Message  string `json:"message"`
	Thread   string `json:"thread"`
	Approval string `json:"approval"`
	Bytes    int64  `json:"bytes" sql:"length(body)"` // 0 once they are dropped
}

// happened counts the lines of a timeline.
type happened struct {
	Workflow string `json:"workflow"`
	Run      string `json:"run"`
	What     string `json:"what"`
	N        int64  `json:"n"`
	Last     int64  `json:"last"` // the ID of the last of them
}

type seen struct {
	EventID string `json:"event_id"`
}

type parked struct {
	EventID string `json:"event_id"`
	Due     micros `json:"due"`
}

// floor is a stretch of which an inbox's IDs are forgotten, for all that lies in
// it has been handled: of what a sweep met, and of what was pushed.
type floor struct {
	Inbox      string `json:"inbox"`
	SweptFrom  int64  `json:"swept_from"`
	SweptUntil int64  `json:"swept_until"`
	From       micros `json:"pushed_from"`
	Until      micros `json:"pushed_until"`
}

// call is a step call, written in the transaction that commits its result, by
// the means a user has for that.
type call struct {
	Engine   string `json:"engine"`
	ID       int64  `json:"id"`
	Workflow string `json:"workflow"`
	Run      string `json:"run"`
	Gen      int64  `json:"gen"`
	Step     int64  `json:"step"`
	TimedOut int64  `json:"timed_out"`
	Timeouts int64  `json:"timeouts"`
	Inputs   string `json:"inputs"` // event IDs between spaces
}

func (c *call) took(event string) bool { return strings.Contains(c.Inputs, " "+event+" ") }

// joined is a start or a signal, written in the user's transaction that the
// engine wrote in.
type joined struct {
	What     string `json:"what"`
	Workflow string `json:"workflow"`
	Name     string `json:"name"` // the signal's
}

const (
	calls  = "resumetest_calls"
	joins  = "resumetest_joined"
	create = `create table if not exists %s (engine text, id bigint, workflow text, run text, gen bigint, step bigint, timed_out bigint, timeouts bigint, inputs text);
create table if not exists %s (what text, workflow text, name text)`
)

// dialect writes one store's names and functions.
type dialect struct {
	own    []string // tables of the scenario's, quoted
	prefix string   // before a table's name
	sqlite bool
	engine string // whose rows are read; empty is all
}

func (d dialect) create() string { return fmt.Sprintf(create, d.table(calls), d.table(joins)) }

func (d dialect) insertCall() string {
	values := "($1, $2, $3, $4, $5, $6, $7, $8, $9)"
	if d.sqlite {
		values = "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
	}
	return "insert into " + d.table(calls) + " values " + values
}

func (d dialect) insertJoined() string {
	values := "($1, $2, $3)"
	if d.sqlite {
		values = "(?1, ?2, ?3)"
	}
	return "insert into " + d.table(joins) + " values " + values
}

func (c *call) values() []any {
	return []any{c.Engine, c.ID, c.Workflow, c.Run, c.Gen, c.Step, c.TimedOut, c.Timeouts, c.Inputs}
}

func (d dialect) table(name string) string { return d.prefix + name }

// selectAll reads every table in one statement, as JSON: one round trip, and
// one moment.
func (d dialect) selectAll() string {
	parts := []string{
		d.rows("workflows", "id", workflow{}), d.rows("threads", "thread", thread{}), d.rows("mail", "id", letter{}),
		d.rows("sends", "workflow, step", send{}),
		d.rows("(select workflow, run, what, count(*) as n, max(id) as last from "+d.table("history")+d.ofEngine("")+
			" group by workflow, run, what) as h", "", happened{}),
		d.rows("seen", "event_id", seen{}), d.rows("parked", "event_id", parked{}), d.rows("floors", "inbox", floor{}),
		d.rows(calls, "id", call{}), d.rows(joins, "name", joined{}),
	}
	clock := "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
	if d.sqlite {
		clock = "cast(unixepoch('subsec') * 1000000 as integer)"
	}
	return "select " + clock + ", (" + strings.Join(parts, "), (") + ")"
}

// rows is a scalar subquery: the rows of a table as a JSON array.
func (d dialect) rows(from, order string, row any) string {
	if !strings.HasPrefix(from, "(") {
		from = d.table(from) + " as t" + d.ofEngine(from)
	}
	var pairs []string
	t := reflect.TypeOf(row)
	for f := range t.NumField() {
		name := t.Field(f).Tag.Get("json")
		value := cmp.Or(t.Field(f).Tag.Get("sql"), name)
		switch {
		case t.Field(f).Type == reflect.TypeFor[micros]() && !d.sqlite:
			value = fmt.Sprintf("coalesce((extract(epoch from %s) * 1000000)::bigint, 0)", value)
		case t.Field(f).Type.Kind() == reflect.Int64:
			value = fmt.Sprintf("coalesce(%s, 0)", value)
		}
		pairs = append(pairs, "'"+name+"', "+value)
	}
	list := strings.Join(pairs, ", ")
	if order != "" {
		order = " order by " + order
	}
	if d.sqlite {
		return "select json_group_array(json_object(" + list + ")" + order + ") from " + from
	}
	return "select coalesce(json_agg(json_build_object(" + list + ")" + order + "), '[]')::text from " + from
}

// ofEngine leaves out other engines' rows; "" is a table that has them.
func (d dialect) ofEngine(table string) string {
	if d.engine == "" || !slices.Contains([]string{"", "workflows", "threads", "mail", "sends", calls}, table) {
		return ""
	}
	return " where engine = '" + strings.ReplaceAll(d.engine, "'", "''") + "'"
}

// clocks are the columns that hold times, by table.
type clocks map[string][]string

var (
	createTable = regexp.MustCompile(`(?i)create table "[^"]+"\.(\w+) \(`)
	timeColumn  = regexp.MustCompile(`(?i)^\s+(\w+)\s+timestamptz`)
)

// clocksOf reads from the published schema which columns hold times.
func clocksOf() (clocks, error) {
	script, err := resume.SQL("x")
	if err != nil {
		return nil, err
	}
	c, table := clocks{}, ""
	for line := range strings.Lines(script) {
		if m := createTable.FindStringSubmatch(line); m != nil {
			table = m[1]
		}
		if m := timeColumn.FindStringSubmatch(line); m != nil {
			c[table] = append(c[table], m[1])
		}
	}
	return c, nil
}

// shift moves every stored time of a table into the past by $1 microseconds.
func (d dialect) shift(table string, columns []string) string {
	var sets []string
	for _, c := range columns {
		by := " - $1::bigint * interval '1 microsecond'"
		if d.sqlite {
			by = " - ?1"
		}
		sets = append(sets, c+" = "+c+by)
	}
	return "update " + d.table(table) + " set " + strings.Join(sets, ", ")
}

// emptied are the tables that a run begins without rows in. The rows of the
// stream and of the engine's name stay, as if never used: they are made once.
var emptied = []string{"history", "mail", "sends", "threads", "workflows", "seen", "parked", "floors", "unreadable", calls, joins}

func (d dialect) empty() []string {
	var out []string
	for _, t := range d.own {
		out = append(out, "delete from "+t)
	}
	for _, t := range emptied {
		out = append(out, "delete from "+d.table(t))
	}
	return append(out, "update "+d.table("streams")+" set cursor = 0, settled = 0, attached = 0, attached_at = null, through = null, "+
		"lease_owner = '', lease_until = null, credential_changed_at = null, lost_at = null, lost_cursor = 0, lost_oldest = 0")
}
