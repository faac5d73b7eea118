// Nothing moves under the pointer: a list under it is drawn when the pointer leaves or rests.

const REST = 1000;

/** Return a function that draws now, or when the pointer has left `element` or rests for a second. */
export function calm(element, draw) {
  let over = false;
  let moved = 0;
  let timer = null;

  function later() {
    if (timer !== null) return;
    timer = setTimeout(() => {
      timer = null;
      ask();
    }, Math.max(50, moved + REST - performance.now()));
  }

  function ask() {
    if (over && performance.now() - moved < REST) later();
    else draw();
  }

  for (const kind of ["pointermove", "pointerdown"]) {
    element.addEventListener(kind, () => {
      over = true;
      moved = performance.now();
    });
  }
  element.addEventListener("pointerleave", () => {
    over = false;
    if (timer === null) return;
    clearTimeout(timer);
    timer = null;
    draw();
  });
  return ask;
}
