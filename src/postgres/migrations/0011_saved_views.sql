-- Filters of a page of the console under a name that their user gave them.
CREATE TABLE saved_views (
  user_id    text NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  page       text NOT NULL,
  name       text NOT NULL,
  query      text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (user_id, page, name)
);
