import { nextTurn } from "../../src/core/next-turn.js";

/** Returns the turns that the event loop has while `work` runs. */
export async function countTurns(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const others = (async () => {
    while (!isOver) {
      await nextTurn();
      turns += 1;
    }
  })();
  await work();
  isOver = true;
  await others;
  return turns;
}
