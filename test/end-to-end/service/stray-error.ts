/** Loaded into each process of a service under test: on SIGUSR2 something goes wrong that nobody catches. */
let count = 0
process.on('SIGUSR2', () => {
  count++
  const error = new Error(`stray ${count}`)
  if (count % 2 === 0) void Promise.reject(error)
  else
    setImmediate(() => {
      throw error
    })
})
