/** Log probabilities of the tokens of a text and of their alternatives. */
import { otherWords, type Random } from './words.ts'

/** Separates their random numbers from those of the text, so that requesting them does not change the words. */
export const LOGPROB_SEED = 0x1095
export const MAX_TOP_LOGPROBS = 20
/** The least probability of the chosen token, which is the likeliest. */
const MIN_PROBABILITY = 0.5

export type Likelihood = { readonly token: string; readonly logprob: number }

export type TokenLogprob = Likelihood & {
  /** The likeliest tokens in its place, including itself. */
  readonly top: readonly Likelihood[]
}

export function writeLogprobs(tokens: readonly string[], top: number, random: Random): TokenLogprob[] {
  return tokens.map((token) => {
    const probability = MIN_PROBABILITY + random() * (1 - MIN_PROBABILITY)
    const said = { token, logprob: Math.log(probability) }
    const others = otherWords(random, token, Math.max(0, top - 1))
    // Each gets half of the rest, so that the sum stays below 1.
    const unlikely = others.map((other, index) => ({
      token: other,
      logprob: Math.log((1 - probability) / 2 ** (index + 1)),
    }))
    return { ...said, top: top === 0 ? [] : [said, ...unlikely] }
  })
}

const withBytes = ({ token, logprob }: Likelihood) => ({ token, logprob, bytes: [...Buffer.from(token)] })

/** Prints them as chat-completions and whole answers of responses do. */
export const wireLogprobs = (tokens: readonly TokenLogprob[]) =>
  tokens.map(({ top, ...said }) => ({ ...withBytes(said), top_logprobs: top.map(withBytes) }))
