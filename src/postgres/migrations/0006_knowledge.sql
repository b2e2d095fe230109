-- Knowledge bases: who reads them, their pages, and the search index.

CREATE TABLE knowledge_bases (
  id         text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  name       text NOT NULL,
  is_default boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now(),
  -- Counted by each import, because each search asks for it.
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

-- Pages of an import: collected while files are read, then moved into the base in one transaction. The next import
-- deletes what a killed one leaves here.
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

-- The search index of knowledge bases: an inverted index in tables. A page is named by wiki_pages.row_id. Terms compare
-- by their bytes.

-- Every term of a base.
CREATE TABLE wiki_terms (
  base_id  text COLLATE "C" NOT NULL,
  term     text COLLATE "C" NOT NULL,
  -- How many pages have it.
  pages    integer NOT NULL,
  -- A bit for each letter in it (a sixteenth of Unicode a bit): words a typing error apart differ in few of them.
  -- Null: a term that is not looked for by likeness.
  letters  integer,
  -- Backwards, for terms that are looked for by likeness.
  reversed text COLLATE "C",
  PRIMARY KEY (base_id, term) INCLUDE (pages, letters)
);
CREATE INDEX wiki_terms_reversed ON wiki_terms (base_id, reversed) INCLUDE (term, pages, letters)
  WHERE reversed IS NOT NULL;

-- For each term the pages that have it, the most relevant first, in parts: a common term is read only as far as it is
-- worth it. An entry is row_id * 1024 + impact (1 to 1023).
CREATE TABLE wiki_postings (
  base_id text COLLATE "C" NOT NULL,
  term    text COLLATE "C" NOT NULL,
  part    integer NOT NULL,
  entries bigint[] NOT NULL,
  PRIMARY KEY (base_id, term, part)
);
-- Numbers in this order do not get smaller by compression.
ALTER TABLE wiki_postings ALTER COLUMN entries SET STORAGE EXTERNAL;

-- The same by page: what is taken out of the index with the page, and what its exact score is made of.
CREATE TABLE wiki_page_terms (
  row_id  bigint PRIMARY KEY,
  base_id text COLLATE "C" NOT NULL,
  terms   text[] COLLATE "C" NOT NULL,
  -- Beside the terms.
  impacts smallint[] NOT NULL
);
CREATE INDEX wiki_page_terms_base ON wiki_page_terms (base_id);
