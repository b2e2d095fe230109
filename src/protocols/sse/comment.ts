import { Buffer } from 'node:buffer'

/** An event stream's comment: its readers skip it. */
export const COMMENT = Buffer.from(': keep-alive\n\n')
