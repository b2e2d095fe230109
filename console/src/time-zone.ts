/** The time zone in which the reader sees and types times: the one of the browser, or UTC. */
const STORED = 'tollgate-time-zone'

export const timeZone = (): 'local' | 'utc' => (localStorage.getItem(STORED) === 'utc' ? 'utc' : 'local')
export const setTimeZone = (zone: 'local' | 'utc'): void => localStorage.setItem(STORED, zone)

/** Returns an instant as a field of date and time shows it; of null an empty text. */
export function fieldOfInstant(instant: string | null): string {
  if (instant === null) return ''
  const date = new Date(instant)
  const offset = timeZone() === 'utc' ? 0 : date.getTimezoneOffset()
  return new Date(date.getTime() - offset * 60_000).toISOString().slice(0, 16)
}

/** Returns the instant that was typed into such a field; null where it is empty. */
export const instantOfField = (text: string): string | null =>
  text === '' ? null : new Date(timeZone() === 'utc' ? `${text}Z` : text).toISOString()
