/** Lets an operator view an account as its owner sees it, in this tab, without changing anything. */

const VIEWED = 'tollgate-viewed-account'

/** Returns the id of the account; null where none is viewed. */
export const readViewedAccount = (): string | null => sessionStorage.getItem(VIEWED)

/** Begins the view and opens the account's home page. */
export function beginView(accountId: string): void {
  sessionStorage.setItem(VIEWED, accountId)
  location.assign(`/console/?account=${encodeURIComponent(accountId)}`)
}

/** Ends the view and goes back to the list of accounts. */
export function endView(accountId: string): void {
  sessionStorage.removeItem(VIEWED)
  location.assign(`/console/accounts?open=${encodeURIComponent(accountId)}`)
}
