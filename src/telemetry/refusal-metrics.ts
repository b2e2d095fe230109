/** Metrics of refused requests. The reasons are few and fixed; only the log has addresses. */
import { countBy, type Register } from './register.ts'

export interface RefusalMeters {
  /** Counts a request that was refused for its key. */
  unauthenticated(reason: string): void
  /** Counts a request or a connection that was refused for a limit of its client, or of all clients. */
  clientRefused(reason: string): void
  /** Counts a call that was refused because the reservations of all processes left too little. */
  reservationRefused(reason: 'wallet' | 'spend_cap' | 'budget'): void
}

export const registerRefusals = (register: Register): RefusalMeters => ({
  unauthenticated: countBy(
    register,
    'reason',
    'tollgate_authentication_failures_total',
    'Requests that were refused for their key.',
  ),
  clientRefused: countBy(
    register,
    'reason',
    'tollgate_client_limit_refusals_total',
    'Requests and connections that were refused for a limit of their client or of the memory for bodies.',
  ),
  reservationRefused: countBy(
    register,
    'reason',
    'tollgate_reservation_refusals_total',
    'Calls that were refused because the reservations of all processes left too little for them.',
  ),
})
