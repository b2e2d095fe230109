-- A booking takes its settlements as one array: its file creates the function again.
DROP FUNCTION IF EXISTS book_settlements;
