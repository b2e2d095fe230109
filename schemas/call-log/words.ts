/** The words of the call log; without the schemas, which a page of the console does not load for a list. */
export const CALL_STATUSES = ['success', 'error', 'interrupted', 'rejected'] as const

export const UNIT_TYPES = [
  'chat',
  'image',
  'video',
  'music',
  'audio',
  'avatar',
  'voice',
  'search',
  'transcript',
] as const
