-- Users of an open sign-up who have not shown that their email is theirs.
CREATE TABLE unproven_emails (
  user_id text PRIMARY KEY REFERENCES users
);
-- A link in a mail, which the owner of the mailbox alone can open.
ALTER TABLE sign_in_links ADD COLUMN is_mailed boolean NOT NULL DEFAULT false;
