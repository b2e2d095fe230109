-- What operators tell customers on the status page.
CREATE TABLE status_notes (
  id          text PRIMARY KEY,
  severity    text NOT NULL,
  text        text NOT NULL,
  -- Null: all.
  models      text[],
  begins_at   timestamptz NOT NULL DEFAULT now(),
  ends_at     timestamptz CHECK (ends_at > begins_at),
  resolved_at timestamptz,
  -- Objects with `at` and `text`, the oldest first.
  updates     jsonb NOT NULL DEFAULT '[]',
  created_by  text NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now()
);
