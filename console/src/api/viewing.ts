/** An account that an operator views as its owner sees it: in this tab, and without changing anything. */

const VIEWED = 'tollgate-viewed-account'

/** Returns the id of the account; null where none is viewed. */
export const readViewedAccount = (): string | null => sessionStorage.getItem(VIEWED)

/** Begins the view, and loads the account's home. */
export function beginView(accountId: string): void {
  sessionStorage.setItem(VIEWED, accountId)
  location.assign(`/console/?account=${encodeURIComponent(accountId)}`)
}

/** Ends, and goes back to the account among the others. */
export function endView(accountId: string): void {
  sessionStorage.removeItem(VIEWED)
  location.assign(`/console/accounts?open=${encodeURIComponent(accountId)}`)
}
