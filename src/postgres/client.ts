/**
 * The client for PostgreSQL, with a fault of its version 3.4.9 corrected. A connection that closes while a statement
 * waits to be sent keeps a timer that never runs and the bytes of that statement: every later use of it waits in vain,
 * until the process ends. A failover under load does that to most connections.
 */
import { readFileSync } from 'node:fs'
import { createRequire, Module } from 'node:module'
import { dirname, join } from 'node:path'
import type postgresType from 'postgres'

/** Stands where a connection is closed, and where it is ended. */
const FAULT = '\n    clearImmediate(nextWriteTimer)\n'
const CORRECTION = '\n    clearImmediate(nextWriteTimer); chunk = nextWriteTimer = null\n'
const PLACES = 2

interface Compiled extends Module {
  _compile(source: string, path: string): void
}

function load(): typeof postgresType {
  const require = createRequire(import.meta.url)
  const entry = require.resolve('postgres')
  const path = join(dirname(entry), 'connection.js')
  const parts = readFileSync(path, 'utf8').split(FAULT)
  if (parts.length - 1 !== PLACES)
    throw new Error(`postgres at ${entry} is another version than src/postgres/client.ts corrects`)
  const corrected = new Module(path) as Compiled
  corrected.filename = path
  corrected._compile(parts.join(CORRECTION), path)
  corrected.loaded = true
  require.cache[path] = corrected
  return require('postgres')
}

export const postgres: typeof postgresType = load()
