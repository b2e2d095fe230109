/**
 * Structured logs: one JSON object a line on stderr, or a readable line where stderr is a terminal. Lines
 * are gathered and written in the background, so that logging costs the event loop next to nothing.
 */
import { createRequire } from 'node:module'
import pino, { type DestinationStream } from 'pino'
import type { LogLevel } from '../../schemas/config/settings.ts'
import { boundLine } from './bounded-line.ts'
import { LineOutput } from './line-output.ts'
import { Scrubber } from './scrub.ts'

type Fields = Readonly<Record<string, unknown>>
type Write = (fields: Fields, message: string) => void

/** An error goes into the field `err`. Messages are constant texts; variable parts are fields. */
export interface Log {
  readonly trace: Write
  readonly debug: Write
  readonly info: Write
  readonly warn: Write
  readonly error: Write
  readonly fatal: Write
}

export interface LogOutput extends Log {
  /** Returns the same output with fields for every line. */
  with(fields: Fields): Log
  /** Masks these values from now on, wherever they appear. */
  hide(secrets: Iterable<string>): void
  /** Hides a secret that lives shortly: the last ones are hidden. */
  hideRecent(secret: string): void
  /** Writes the gathered lines; returns when they are out, or cannot be written. */
  flush(): void
}

const STDERR = 2

export interface LogOptions {
  readonly level: LogLevel
  /** Fields of every line, such as the process's role. */
  readonly fields?: Fields
  readonly pretty?: boolean
  /** A file descriptor or a path; stderr by default. */
  readonly destination?: number | string
}

export function createLog(options: LogOptions): LogOutput {
  const { level, fields = {}, destination = STDERR, pretty = process.stderr.isTTY === true } = options
  const output = new LineOutput(destination)
  const flush = () => output.flush()
  process.on('exit', flush)

  const scrubber = new Scrubber()
  const print = pretty ? prettyPrinter() : (line: string) => line
  const stream: DestinationStream = {
    write(line) {
      // Bounded last: a secret cut in two would no longer be recognized.
      output.write(print(boundLine(scrubber.scrub(line))))
    },
  }
  const logger = pino(
    {
      level,
      // Not `pid`: lines about other processes name theirs so.
      base: { process: process.pid, ...fields },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // Both names are in use; by default pino would print the second one's errors as {}.
      serializers: { err: pino.stdSerializers.err, error: pino.stdSerializers.err },
    },
    stream,
  )
  return Object.assign(writers(logger), {
    with: (more: Fields) => writers(logger.child(more)),
    hide: (secrets: Iterable<string>) => scrubber.hide(secrets),
    hideRecent: (secret: string) => scrubber.hideRecent(secret),
    flush,
  })
}

/** Loads its package only where lines are printed for a person. */
function prettyPrinter(): (line: string) => string {
  const { prettyFactory } = createRequire(import.meta.url)('pino-pretty') as typeof import('pino-pretty')
  return prettyFactory({
    colorize: true,
    singleLine: true,
    translateTime: 'UTC:HH:MM:ss.l',
    ignore: 'process',
    errorLikeObjectKeys: ['err', 'error'],
  })
}

function writers(logger: pino.Logger): Log {
  return {
    trace: (fields, message) => logger.trace(fields, message),
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    fatal: (fields, message) => logger.fatal(fields, message),
  }
}
