-- Events, written in the transaction of the change that they tell of.
CREATE TABLE outbox (
    event_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    object_uuid uuid,
    kind        text NOT NULL,
    payload     jsonb NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
