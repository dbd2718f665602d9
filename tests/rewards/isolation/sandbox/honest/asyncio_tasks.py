import asyncio


async def squares(count):
    async def square(number):
        await asyncio.sleep(0.001)
        return number * number

    return await asyncio.gather(*map(square, range(count)))


assert asyncio.run(squares(5)) == [0, 1, 4, 9, 16]


async def elsewhere():
    return await asyncio.get_running_loop().run_in_executor(None, sum, [1, 2, 3])


assert asyncio.run(elsewhere()) == 6
