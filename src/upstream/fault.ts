/** Why a parser refused a response. Constants: a refusal must cost nothing. */
export interface Fault {
  readonly kind: 'malformed' | 'too_large' | 'truncated' | 'closed'
  readonly detail: string
}

export const malformed = (detail: string): Fault => ({ kind: 'malformed', detail })
export const tooLarge = (detail: string): Fault => ({ kind: 'too_large', detail })
