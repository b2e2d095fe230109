/**
 * What shaped a call and what became of it, beyond what the other columns of its row say. One is kept for every call
 * ever made, so keys are short, and what the client did not send, or what is usual, is left out. Never any text of a
 * prompt or an answer, and nothing that names a channel or what it calls the model.
 */
import { z } from 'zod'
import { CHAT_PROTOCOLS } from '../config/catalog.ts'

const count = z.int().min(0)
/** Names and values, as they are shown. */
const lines = z.array(z.tuple([z.string(), z.string()]))

export const CALL_DETAIL_FIELDS = {
  // What the client asked for.
  /** The path, where the protocol does not imply it. */
  ep: z.string(),
  /** The model as asked for, where it was an alias. */
  q: z.string(),
  /** Bytes of the JSON that the pre-charge counts as input. */
  b: count,
  /** Messages, contents or input items. */
  m: count,
  /** The output limit, tokens. */
  o: count,
  /** Choices, or candidates. */
  n: count,
  /** Temperature. */
  t: z.number(),
  /** top_p */
  p: z.number(),
  /** top_k */
  k: z.number(),
  /** Frequency penalty. */
  fp: z.number(),
  /** Presence penalty. */
  pp: z.number(),
  /** Seed. */
  s: z.number(),
  /** Stop sequences. */
  st: count,
  /** Reasoning effort, or level of thinking. */
  e: z.string(),
  /** Budget of thinking, tokens; negative where the upstream is to decide. */
  eb: z.number(),
  /** Tools declared, those of the upstream's own among them. */
  tn: count,
  /** Tools that run at the upstream, separated by commas. */
  bt: z.string(),
  /** Tool choice, with the name of a tool where one is forced. */
  tc: z.string(),
  /** Format of the answer. */
  f: z.string(),
  /** The agent that answered. */
  ag: z.string(),
  /** Pages of its knowledge bases that it was given. */
  kp: count,
  /** What was requested, where it is no chat call. */
  rq: lines,

  // What became of it at the upstream; of several attempts, the last.
  /** What the upstream was spoken to in, where the gateway translated. */
  u: z.enum(CHAT_PROTOCOLS),
  /** Fields that the translation left out, with reasons, separated by semicolons. */
  d: z.string(),
  /** The HTTP status of the upstream's answer, where it was not 200. */
  h: count,
  /** Microseconds from the arrival of the request until the attempt went out. */
  w: count,
  /** And from there until the upstream's status came. */
  a: count,
  /** Reported counts that no call can have, with the bounds at which they were charged, separated by commas. */
  us: z.string(),
  /** 1 where the upstream names another model in its answer than was requested. */
  om: count,
  /** What came of a job that outlives its request. */
  up: lines,

  // What it cost.
  /** The prices that held, as `src/core/pricing/terms.ts` prints them. */
  g: z.string(),
  /** How the cost of what is not priced by tokens came about. */
  pl: z.string(),
  /** The estimate that was refused, in units of 1e-8 credit. */
  x: z.string().regex(/^\d+$/),
}

type Fields = typeof CALL_DETAIL_FIELDS
export type CallDetail = { readonly [Key in keyof Fields]?: z.infer<Fields[Key]> }

type KeysFor<T> = {
  [Key in keyof Fields]: z.infer<Fields[Key]> extends T ? Key : never
}[keyof Fields]
export type NumberKey = KeysFor<number>
export type TextKey = KeysFor<string>
export type LinesKey = KeysFor<[string, string][]>
