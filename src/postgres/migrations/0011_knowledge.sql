CREATE TABLE knowledge_bases (
  id         text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  name       text NOT NULL,
  is_default boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Counted by each import: whoever searches asks for it.
  page_count integer NOT NULL DEFAULT 0
);
CREATE INDEX knowledge_bases_account ON knowledge_bases (account_id, id);
CREATE UNIQUE INDEX knowledge_bases_default ON knowledge_bases (account_id) WHERE is_default;

-- Accounts, organizations and agents, by id.
CREATE TABLE knowledge_readers (
  base_id    text NOT NULL REFERENCES knowledge_bases ON DELETE CASCADE,
  reader_id  text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (base_id, reader_id)
);
CREATE INDEX knowledge_readers_reader ON knowledge_readers (reader_id);

CREATE TRIGGER knowledge_bases_audited AFTER INSERT OR UPDATE OR DELETE ON knowledge_bases
  FOR EACH ROW EXECUTE FUNCTION audit_change('kb', 'id', 'account_id', 'create', 'delete');

CREATE FUNCTION audit_reader_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  either knowledge_readers := coalesce(NEW, OLD);
  reader jsonb := jsonb_build_object('reader_id', either.reader_id);
BEGIN
  PERFORM record_act(
    CASE TG_OP WHEN 'INSERT' THEN 'kb.grant' ELSE 'kb.revoke' END,
    (SELECT account_id FROM knowledge_bases WHERE id = either.base_id), either.base_id,
    CASE TG_OP WHEN 'DELETE' THEN reader END, CASE TG_OP WHEN 'INSERT' THEN reader END);
  RETURN NULL;
END
$$;
CREATE TRIGGER knowledge_readers_audited AFTER INSERT OR DELETE ON knowledge_readers
  FOR EACH ROW EXECUTE FUNCTION audit_reader_change();

CREATE TABLE wiki_pages (
  -- What indexes name a page by.
  row_id       bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
  id           text PRIMARY KEY,
  base_id      text NOT NULL REFERENCES knowledge_bases ON DELETE CASCADE,
  path         text NOT NULL,
  hash         bytea NOT NULL,
  title        text NOT NULL,
  summary      text NOT NULL,
  body         text NOT NULL,
  -- The body without its markup.
  plain_text   text NOT NULL,
  tags         text[] NOT NULL,
  aliases      text[] NOT NULL,
  links        text[] NOT NULL,
  confidence   text NOT NULL,
  needs_review boolean NOT NULL,
  source       json,
  updated_at   timestamptz NOT NULL DEFAULT now(),
  UNIQUE (base_id, path)
);
-- Whether an object of the store is still some page's source.
CREATE INDEX wiki_pages_source ON wiki_pages ((source ->> 'r2_key')) WHERE source IS NOT NULL;

-- What a page may be linked by: its title (rank 0) and its aliases (rank 1), in the form in which names compare.
CREATE TABLE wiki_names (
  base_id text NOT NULL,
  name    text NOT NULL,
  rank    smallint NOT NULL,
  page_id text NOT NULL REFERENCES wiki_pages ON DELETE CASCADE,
  PRIMARY KEY (base_id, name, rank, page_id)
);
CREATE INDEX wiki_names_page ON wiki_names (page_id);

-- What a page links to, in the same form: resolved when it is read, so that a link finds a page that came later.
CREATE TABLE wiki_links (
  page_id  text NOT NULL REFERENCES wiki_pages ON DELETE CASCADE,
  -- Of the page's links, from 1.
  position integer NOT NULL,
  base_id  text NOT NULL,
  name     text NOT NULL,
  -- The beginning of the page's own title, in the same form: lists are in its order, and only their beginning is read.
  title    text COLLATE "C" NOT NULL,
  PRIMARY KEY (page_id, position)
);
CREATE INDEX wiki_links_target ON wiki_links (base_id, name) INCLUDE (page_id, title);

CREATE TABLE wiki_tags (
  base_id text NOT NULL,
  -- In the same form; `tag` is how the page writes it.
  name    text NOT NULL,
  page_id text NOT NULL REFERENCES wiki_pages ON DELETE CASCADE,
  tag     text NOT NULL,
  -- As in wiki_links.
  title   text COLLATE "C" NOT NULL,
  PRIMARY KEY (base_id, name, page_id) INCLUDE (tag, title)
);
CREATE INDEX wiki_tags_page ON wiki_tags (page_id);

-- How many pages have a tag, and how most of them write it. Counted by each import.
CREATE TABLE wiki_tag_counts (
  base_id text NOT NULL REFERENCES knowledge_bases ON DELETE CASCADE,
  name    text NOT NULL,
  tag     text NOT NULL,
  pages   integer NOT NULL,
  PRIMARY KEY (base_id, name)
);

-- Pages on their way into a base: collected while files are read, then taken over in one transaction. What a killed
-- import leaves here the next one clears away.
CREATE UNLOGGED TABLE wiki_staging (
  import_id    uuid NOT NULL,
  position     integer NOT NULL,
  staged_at    timestamptz NOT NULL DEFAULT now(),
  id           text NOT NULL,
  path         text NOT NULL,
  hash         bytea NOT NULL,
  title        text NOT NULL,
  summary      text NOT NULL,
  body         text NOT NULL,
  plain_text   text NOT NULL,
  tags         text[] NOT NULL,
  aliases      text[] NOT NULL,
  links        text[] NOT NULL,
  confidence   text NOT NULL,
  needs_review boolean NOT NULL,
  source       json,
  -- Title and aliases, links and tags in the form in which names compare, in the same order.
  name_keys    text[] NOT NULL,
  link_keys    text[] NOT NULL,
  tag_keys     text[] NOT NULL,
  PRIMARY KEY (import_id, position)
);
